package rank

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if platform == "nvidia" {
		flag.Parse()
		flag.Set("test.parallel", "1") // worlds side by side want more streams than a device has
	}
	goleak.VerifyTestMain(m)
}
