package example

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/triggeredplans/sluice/metrics"
	"github.com/triggeredplans/sluice/rank"
	"github.com/triggeredplans/sluice/timeline"
	"github.com/triggeredplans/sluice/timeline/picture"
)

// RunWorld is rank.Run for a world that people can watch: it serves -metrics
// while the world is open, and writes -trace and -plot when it is closed.
func (f *Flags) RunWorld(ctx context.Context, cfg rank.Config, body func(context.Context, *rank.Rank) error) (err error) {
	if f.Trace != "" || f.Plot != "" {
		cfg.Timeline = new(timeline.Recorder)
	}
	// A file that cannot be is better known before the rounds than after them.
	var trace *os.File
	if f.Trace != "" {
		if trace, err = os.Create(f.Trace); err != nil {
			return fmt.Errorf("-trace: %w", err)
		}
		defer func() { err = errors.Join(err, trace.Close()) }()
	}
	w, err := rank.Open(ctx, cfg)
	if err != nil {
		return err
	}
	stop, err := f.serve(w)
	if err == nil {
		err = w.Run(ctx, body)
		f.linger(ctx)
		err = errors.Join(err, stop())
	}
	err = errors.Join(err, w.Close(context.WithoutCancel(ctx)))
	if cfg.Timeline != nil {
		err = errors.Join(err, f.writeTimeline(cfg.Timeline, trace, err != nil))
	}
	return err
}

// headerTimeout is for clients that connect and say nothing.
const headerTimeout = 5 * time.Second

// serve serves the world's metrics and page, if -metrics asks for it, until
// stop is called.
func (f *Flags) serve(w *rank.World) (stop func() error, err error) {
	if f.Metrics == "" {
		return func() error { return nil }, nil
	}
	l, err := net.Listen("tcp", f.Metrics)
	if err != nil {
		return nil, fmt.Errorf("-metrics: %w", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewCollector(w))
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle(metrics.Path, metrics.Handler(w))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	f.Note("serving http://%v/metrics and http://%v%s", l.Addr(), l.Addr(), metrics.Path)
	return func() error {
		err := server.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}

// linger leaves people time to look at what -metrics serves.
func (f *Flags) linger(ctx context.Context) {
	if f.Metrics == "" || f.Linger == 0 {
		return
	}
	f.Note("serving for another %v", f.Linger)
	t := time.NewTimer(f.Linger)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// writeTimeline writes what was recorded, which may be nothing if the run has
// failed.
func (f *Flags) writeTimeline(rec *timeline.Recorder, trace io.Writer, failed bool) error {
	if f.Trace != "" {
		if err := rec.WriteTrace(trace); err != nil {
			return fmt.Errorf("-trace: %w", err)
		}
		f.Say("wrote %s: open it with ui.perfetto.dev", f.Trace)
	}
	if f.Plot != "" {
		err := picture.Save(f.Plot, picture.Last(rec.Rounds()))
		if failed && errors.Is(err, picture.ErrNothing) {
			return nil
		} else if err != nil {
			return fmt.Errorf("-plot: %w", err)
		}
		f.Say("wrote %s: the last round", f.Plot)
	}
	return nil
}
