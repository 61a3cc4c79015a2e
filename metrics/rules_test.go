package metrics

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// expressions are the PromQL of the dashboard and of the alert rules.
func expressions(t *testing.T) (all []string) {
	t.Helper()
	var dashboard struct {
		Templating struct {
			List []struct{ Query any }
		}
		Panels []struct {
			ID      int
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range dashboard.Panels {
		if seen[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		seen[p.ID] = true
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	rules, err := os.ReadFile("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^ *expr: (.*)$`).FindAllStringSubmatch(string(rules), -1) {
		all = append(all, m[1])
	}
	return all
}

func TestDashboardAndAlertsUseWhatIsExportedAndAllOfIt(t *testing.T) {
	kinds, labels := map[string]string{}, map[string][]string{}
	for d := range described() {
		kinds["sluice_"+d.name], labels["sluice_"+d.name] = d.kind, append([]string{"world", "le"}, d.labels...)
	}
	used := map[string]bool{}
	metric := regexp.MustCompile(`\bsluice_\w+`)
	grouping := regexp.MustCompile(`by \(([^)]*)\)`)
	for _, expr := range expressions(t) {
		var allowed []string
		for _, name := range metric.FindAllString(expr, -1) {
			family := name
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				if f, ok := strings.CutSuffix(name, part); ok && kinds[f] == "histogram" {
					family = f
				}
			}
			if kinds[family] == "" || kinds[family] == "histogram" && family == name {
				t.Errorf("%s is not exported, and used in %s", name, expr)
			}
			if isRate := strings.Contains(expr, "rate(") || strings.Contains(expr, "increase("); kinds[family] == "counter" && !isRate {
				t.Errorf("%s is a counter, and used without its rate in %s", name, expr)
			}
			used[family] = true
			allowed = append(allowed, labels[family]...)
		}
		for _, by := range grouping.FindAllStringSubmatch(expr, -1) {
			for label := range strings.SplitSeq(by[1], ", ") {
				if !slices.Contains(allowed, label) {
					t.Errorf("there is no label %s for %s", label, expr)
				}
			}
		}
	}
	for name := range kinds {
		if !used[name] {
			t.Errorf("neither the dashboard nor an alert uses %s", name)
		}
	}
}

func TestPrometheusTakesTheAlertRules(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (on Debian: apt-get install prometheus)")
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", "alerts.yaml").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
