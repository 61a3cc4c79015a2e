package example

import (
	"flag"
	"fmt"
	"strconv"
)

// Count declares a flag that holds a whole number from low to high.
func Count(fs *flag.FlagSet, to *int, name string, value, low, high int, usage string) {
	*to = value
	fs.Var(&count{to, low, high}, name, fmt.Sprintf("%s, an `int` from %d to %d", usage, low, high))
}

type count struct {
	to        *int
	low, high int
}

func (c *count) String() string {
	if c.to == nil {
		return ""
	}
	return strconv.Itoa(*c.to)
}

// Set implements flag.Value.
func (c *count) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < c.low || n > c.high {
		return fmt.Errorf("it is a whole number from %d to %d", c.low, c.high)
	}
	*c.to = n
	return nil
}
