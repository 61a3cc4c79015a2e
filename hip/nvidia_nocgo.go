//go:build !cgo || !linux

package hip

// openNVIDIA needs C to call the driver.
func openNVIDIA() (Platform, error) {
	return nil, &LibraryError{
		Platform: "nvidia", Library: cudaLibrary(), Setting: CUDASetting,
		Why: "this program was built without cgo; build it on Linux with CGO_ENABLED=1 and a C compiler",
	}
}
