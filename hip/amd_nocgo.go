//go:build !cgo || !linux

package hip

// openAMD needs C to call ROCm.
func openAMD() (Platform, error) {
	return nil, &LibraryError{
		Platform: "amd", Library: "libamdhip64", Setting: ROCmSetting,
		Why: "this program was built without cgo; build it on Linux with CGO_ENABLED=1 and a C compiler",
	}
}
