// Package schedule says which bytes one rank sends, in which groups and in
// which order: regions, the chunks they are sent in, and builders for the
// producers that are common. It is arithmetic on byte offsets and touches no
// memory.
//
// A region lands on every peer at the offset it has here. The builders make
// schedules that pass Validate for any buffer that holds their window; a
// schedule made by hand is checked by Validate, and two ranks' schedules
// against each other by Overlap.
//
// schedule imports no other package of this module.
package schedule
