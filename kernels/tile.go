package kernels

// TileOf is the tile that a producer computes at a step: tiles are numbered
// row by row, and groups of `group` tile rows are walked column by column, so
// that group 1 is row-major. It is -1 if there is no such step or group.
//
// Schedules take this same function as their order; devices evaluate their own
// copy of it, tile_of.
func TileOf(step, tilesM, tilesN, group int) int {
	if step < 0 || tilesM < 1 || tilesN < 1 || group < 1 || step/tilesN >= tilesM {
		return -1
	}
	group = min(group, tilesM)
	inGroup := step % (group * tilesN)
	first := step / (group * tilesN) * group // tile row
	rows := min(group, tilesM-first)
	return (first+inGroup%rows)*tilesN + inGroup/rows
}
