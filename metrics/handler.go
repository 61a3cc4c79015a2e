package metrics

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"strconv"

	"github.com/triggeredplans/sluice/rank"
)

// Path is where programs serve Handler.
const Path = "/debug/sluice"

// defaultRefresh and maxRefresh are seconds between two loads of the page.
const (
	defaultRefresh = 2
	maxRefresh     = 3600
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// Handler serves a page about the world, to be looked at in a browser: its
// queues, its plans, and a square for every chunk and rank that shows how far
// the chunk has come, so that one sees at a glance where a round is stuck. With
// ?format=json it serves the same as JSON. The page loads itself again every 2
// seconds, or every ?refresh=N; 0 stops it.
//
// It answers GET and HEAD, changes nothing, and shows no data of tensors. It
// has no access control of its own: serve it where metrics are served.
func Handler(w *rank.World) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { serve(w, rw, r) })
}

func serve(w *rank.World, rw http.ResponseWriter, r *http.Request) {
	h := rw.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(rw, "the page can only be read: use GET", http.StatusMethodNotAllowed)
		return
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		http.Error(rw, "the query cannot be read", http.StatusBadRequest)
		return
	}
	refresh := defaultRefresh
	if s := query.Get("refresh"); s != "" {
		if refresh, err = strconv.Atoi(s); err != nil || refresh < 0 || refresh > maxRefresh {
			http.Error(rw, "refresh is a number of seconds from 0 (never) to 3600", http.StatusBadRequest)
			return
		}
	}
	var body bytes.Buffer
	v := newView(w)
	switch query.Get("format") {
	case "json":
		h.Set("Content-Type", "application/json")
		e := json.NewEncoder(&body)
		e.SetIndent("", "  ")
		err = e.Encode(v)
	case "", "html":
		h.Set("Content-Type", "text/html; charset=utf-8")
		v.Refresh = refresh
		err = pageTemplate.Execute(&body, v)
	default:
		http.Error(rw, "format is json or html", http.StatusBadRequest)
		return
	}
	if err != nil {
		http.Error(rw, "the page cannot be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = body.WriteTo(rw) // the reader may have gone
}
