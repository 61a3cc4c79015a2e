package rank

import "sync/atomic"

// loss notes why something that was put to a peer never arrived, until a Quiet
// asks.
type loss struct{ why atomic.Pointer[error] }

func (l *loss) note(err error) {
	if err != nil {
		l.why.CompareAndSwap(nil, &err)
	}
}

func (l *loss) take() error {
	if why := l.why.Swap(nil); why != nil {
		return *why
	}
	return nil
}
