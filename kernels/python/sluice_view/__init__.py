"""How a Triton or a Gluon kernel takes part in a plan that Go drives.

    from sluice_view.triton_view import TriggeredView   # for @triton.jit
    from sluice_view.gluon_view import TriggeredView    # for @gluon.jit

Both read the handle that the plan's Start returns and have the same methods:
initialize, mark_ready, arrived, wait, and what the handle says.
"""
