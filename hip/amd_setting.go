package hip

import "os"

// The environment variables of the amd platform.
const (
	// ROCmSetting names the only folder in which ROCm's libraries are looked
	// for.
	ROCmSetting = "SLUICE_ROCM"
	// KFDSetting names a library that stands in for the KFD device.
	KFDSetting = "SLUICE_KFD"
	// SysfsSetting names the folder that stands in for /sys.
	SysfsSetting = "SLUICE_SYSFS"
)

func sysfs() string {
	if root := os.Getenv(SysfsSetting); root != "" {
		return root
	}
	return "/sys"
}
