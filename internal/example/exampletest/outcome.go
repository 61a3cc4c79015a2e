package exampletest

import (
	"encoding/json"
	"strings"
	"testing"
)

// Outcome is how one run of a program ended.
type Outcome struct {
	Code        int
	Stdout, Err string // what it printed
}

// Decode reads the one object that standard output must be into to.
func (o Outcome) Decode(t *testing.T, to any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(o.Stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		t.Fatalf("standard output is no result: %v\n%s%s", err, o.Stdout, o.Err)
	}
	if d.More() {
		t.Fatalf("standard output has more than one object:\n%s", o.Stdout)
	}
}

// Failed checks that the run ended with a status and one line on standard error
// that is the named program's and says what it must.
func (o Outcome) Failed(t *testing.T, code int, program, says string) {
	t.Helper()
	if o.Code != code {
		t.Errorf("status %d, want %d", o.Code, code)
	}
	if n := strings.Count(o.Err, "\n"); n != 1 || !strings.HasSuffix(o.Err, "\n") {
		t.Errorf("%d lines on standard error:\n%s", n, o.Err)
	}
	if !strings.HasPrefix(o.Err, program+": ") || !strings.Contains(o.Err, says) {
		t.Errorf("standard error does not say %q: %s", says, o.Err)
	}
}

// Fields checks that the object on standard output has just these fields.
func (o Outcome) Fields(t *testing.T, names ...string) {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(o.Stdout), &fields); err != nil {
		t.Fatalf("%v: %s", err, o.Stdout)
	}
	for _, f := range names {
		if _, ok := fields[f]; !ok {
			t.Errorf("no field %s", f)
		}
		delete(fields, f)
	}
	if len(fields) > 0 {
		t.Errorf("fields nobody knows of: %v", fields)
	}
}
