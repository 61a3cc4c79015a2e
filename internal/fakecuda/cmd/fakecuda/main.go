// Command fakecuda builds the stand-in for NVIDIA's driver library and prints
// where it is.
package main

import (
	"fmt"
	"os"

	"github.com/triggeredplans/sluice/internal/fakecuda"
)

func main() {
	lib, err := fakecuda.Library()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(lib)
}
