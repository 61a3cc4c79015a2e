package python

import (
	"embed"
	"io/fs"
)

//go:embed all:built
var built embed.FS

// Built is the kernels that come with this module, as build.py wrote them.
func Built() fs.FS {
	sub, err := fs.Sub(built, "built")
	if err != nil {
		return built // cannot be: the name is valid
	}
	return sub
}
