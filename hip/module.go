package hip

// Module is kernels that a device has loaded.
type Module interface {
	// Function is the kernel of that name, loaded onto the device. The error
	// says what the driver answered if there is none.
	Function(name string) (*Function, error)
	// Unload gives the module back. Nothing that was launched from it may still
	// run; the error is a *BusyError while the device works.
	Unload() error
}
