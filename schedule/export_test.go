package schedule

// OverlapInBatches is Overlap with so few cells in memory that small schedules
// need several batches.
func OverlapInBatches(a, b Schedule, batch int) (*Shared, bool) { return overlap(a, b, batch) }
