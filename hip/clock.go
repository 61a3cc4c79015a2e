package hip

import "time"

// epoch is when the host platform's clock began.
var epoch = time.Now()

// Clock is the host platform's clock, which stamps what its kernels and copy
// engines do: nanoseconds since the process began, never 0.
func Clock() int64 { return int64(time.Since(epoch)) + 1 }
