package plan

import (
	"errors"
	"slices"

	"github.com/triggeredplans/sluice/copyengine"
	"github.com/triggeredplans/sluice/heap"
	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/schedule"
)

// refusal is a kind of reason why a preparation fails.
type refusal struct {
	kind string
	fits func(error) bool
}

// refusals are all kinds; the first that fits counts.
var refusals = []refusal{
	{"ring", is[*copyengine.RingError]},
	{"capacity", is[*copyengine.CapacityError]},
	{"put", func(err error) bool { return errors.Is(err, copyengine.ErrPutWaits) }},
	{"fault", is[*copyengine.FaultError]},
	{"kernel", is[*hip.KernelError]},
	{"memory", func(err error) bool { return is[*heap.ExhaustedError](err) || is[*hip.MemoryError](err) }},
	{"schedule", func(err error) bool {
		return is[*schedule.Error](err) || is[*OverlapError](err) || is[*OutsideError](err) ||
			errors.Is(err, ErrEmpty) || errors.Is(err, ErrBuffer)
	}},
	{"state", func(err error) bool { return is[*StateError](err) || is[*PeerError](err) || is[*RoundsError](err) }},
	{"rank", func(err error) bool {
		return is[*rank.GoneError](err) || is[*rank.WithdrawnError](err) || is[*rank.MismatchError](err) ||
			is[*rank.ClosingError](err) || is[*rank.BusyError](err)
	}},
	{"other", func(error) bool { return true }},
}

func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// Refusals are the kinds by which Observation.Refused counts.
func Refusals() (kinds []string) {
	for _, r := range refusals {
		kinds = append(kinds, r.kind)
	}
	return kinds
}

// kindOf is why a preparation failed.
func kindOf(err error) string {
	return refusals[slices.IndexFunc(refusals, func(r refusal) bool { return r.fits(err) })].kind
}
