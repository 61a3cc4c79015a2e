package hip

import "os"

// CUDASetting is the environment variable that names the driver's library of
// the nvidia platform, where it is not the loader's libcuda.so.1.
const CUDASetting = "SLUICE_LIBCUDA"

func cudaLibrary() string {
	if lib := os.Getenv(CUDASetting); lib != "" {
		return lib
	}
	return "libcuda.so.1"
}
