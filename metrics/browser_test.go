package metrics

import (
	"context"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// browser starts a headless Chromium with an empty profile of its own, or skips
// the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium is installed (on Debian: apt-get install chromium)")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx,
		chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.WindowSize(1280, 900), chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true),
	)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		chromedp.FromContext(ctx).Allocator.Wait() // removes the profile
	})
	return ctx
}

// inBrowser loads a page and returns what each expression is in it.
func inBrowser(t *testing.T, ctx context.Context, url string, expressions ...string) []string {
	t.Helper()
	results := make([]string, len(expressions))
	actions := []chromedp.Action{chromedp.Navigate(url)}
	for i, e := range expressions {
		actions = append(actions, chromedp.Evaluate("String("+e+")", &results[i]))
	}
	if err := chromedp.Run(ctx, actions...); err != nil {
		t.Fatal(err)
	}
	return results
}

func TestAStuckChunkIsVisibleInABrowser(t *testing.T) {
	ctx := browser(t)
	s := newShow(t, 3, prepare, stick, unstick)
	server := httptest.NewServer(Handler(s.World))
	defer server.Close()
	s.next(t)
	s.next(t)
	url := server.URL + Path + "?refresh=1"
	square := func(chunk, at string) string {
		return `document.querySelector('td[data-chunk="` + chunk + `"][data-at="` + at + `"]')`
	}
	stuck := []string{
		square("6", "1") + ".className", // its own rank's marks
		square("6", "1") + ".title",
		square("6", "0") + ".className",
		square("7", "2") + ".className", // behind it
		square("5", "0") + ".className",
		"document.querySelector('ul.short').innerText",
		"getComputedStyle(" + square("6", "0") + ").backgroundColor != getComputedStyle(" + square("5", "0") + ").backgroundColor",
		square("6", "0") + ".getBoundingClientRect().width >= 12",
		"document.querySelectorAll('meter').length",
		"document.querySelector('tr[data-queue=\"host:1→host:0\"] meter').value",
	}
	want := []string{"waiting", "chunk 6 of rank 1: 1 of its 2 marks", "waiting", "marked", "arrived",
		"chunk 6 of rank 1: it has 1 of its 2 marks\n" +
			"chunk 7 of rank 1 at rank 0: it is marked, but waits behind chunk 6 on queue host:1→host:0, which is not\n" +
			"chunk 7 of rank 1 at rank 2: it is marked, but waits behind chunk 6 on queue host:1→host:2, which is not",
		"true", "true", "6", "336"}
	got := inBrowser(t, ctx, url, stuck...)
	for i := range got {
		if strings.ReplaceAll(got[i], " late", "") != want[i] {
			t.Errorf("%s is %q, want %q", stuck[i], got[i], want[i])
		}
	}

	// The page loads itself again and shows that the chunk has gone its way.
	var class string
	err := chromedp.Run(ctx, chromedp.WaitVisible("td.late", chromedp.ByQuery), chromedp.ActionFunc(func(context.Context) error {
		s.next(t)
		return nil
	}), chromedp.WaitVisible(`td.arrived[data-chunk="6"][data-at="2"]`, chromedp.ByQuery), chromedp.Evaluate(square("7", "0")+".className", &class))
	if err != nil || class != "arrived" {
		t.Errorf("when the mark had been made, chunk 7 was %q; error %v", class, err)
	}
}

func TestThePageFitsAPhone(t *testing.T) {
	ctx := browser(t)
	s := newShow(t, 8, prepare, stick)
	server := httptest.NewServer(Handler(s.World))
	defer server.Close()
	s.next(t)
	s.next(t)
	if err := chromedp.Run(ctx, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile)); err != nil {
		t.Fatal(err)
	}
	got := inBrowser(t, ctx, server.URL+Path+"?refresh=0",
		"document.documentElement.scrollWidth <= 390", "document.querySelectorAll('[data-chunk=\"6\"]').length", "document.querySelector('meta[http-equiv=refresh]')")
	if want := []string{"true", "8", "null"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q: no wider than the screen, chunk 6 for 8 ranks, no refresh", got, want)
	}
}
