package hip

import "fmt"

// CUDAError is what NVIDIA's driver answered to a call.
type CUDAError struct {
	Call   string // the driver's function
	Device string // for example "nvidia:0"
	Queue  string // the queue or stream that it was for, "" if for none
	Code   int
	Name   string // for example "CUDA_ERROR_OUT_OF_MEMORY"
	Text   string
}

func (e *CUDAError) Error() string {
	on := e.Device
	if e.Queue != "" {
		on += ", " + e.Queue
	}
	return fmt.Sprintf("hip: %s on %s failed: %s (%d): %s", e.Call, on, e.Name, e.Code, e.Text)
}
