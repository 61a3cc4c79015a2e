// Package inject lets tests make steps of a plan's life fail, and wake-ups come
// late, twice, for nothing and out of order. Nothing is injected unless a test
// says so.
package inject
