package kfd

import "fmt"

// Node is a GPU in the driver's topology.
type Node struct {
	ID       int    // the node's number
	GPU      uint32 // gpu_id, by which ioctls name it
	Domain   uint32 // PCI domain
	Location uint32 // bus<<8 | device<<3 | function
	Device   uint32 // PCI device id
	Target   uint32 // gfx_target_version: 90402 is 9.4.2
	// Engines is how many ordinary copy engines there are, with the ids from 0
	// on; those made for xGMI follow them.
	Engines, XGMIEngines int
	QueuesPerEngine      int
	// HostVisible says that the host can map all of its memory (a large BAR).
	HostVisible bool
	Links       []Link
}

// Link is a way to another node.
type Link struct {
	To   int // node number
	XGMI bool
	// Engines is the driver's recommendation: bit i for engine i; 0 where it has
	// none.
	Engines uint64
}

// Arch is the name of the GPU's instruction set, for example "gfx942".
func (n *Node) Arch() string {
	return fmt.Sprintf("gfx%d%x%x", n.Target/10000, n.Target/100%100, n.Target%100)
}

// Link returns the best link to a node: xGMI, if there is such. It reports
// false if there is none.
func (n *Node) Link(to int) (best Link, ok bool) {
	for _, l := range n.Links {
		if l.To == to && (!ok || l.XGMI && !best.XGMI) {
			best, ok = l, true
		}
	}
	return best, ok
}
