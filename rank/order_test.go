package rank

import (
	"context"
	"slices"
	"testing"
)

// Plans give queues their chains in the order in which these were made. Ranks
// that all began with the same peer would share its links.
func TestARanksQueuesAreMadeFromTheNextRankOn(t *testing.T) {
	const ranks = 5
	node, err := NewNode(NodeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	err = Run(t.Context(), Config{Ranks: ranks, Platform: "host", Node: node, HeapBytes: 1 << 16}, func(ctx context.Context, r *Rank) error {
		var got []int
		for _, q := range node.Queues() {
			if peer := slices.Index(r.queues, q); peer >= 0 {
				got = append(got, peer)
			}
		}
		for i, peer := range got {
			if want := (r.ID() + 1 + i) % ranks; len(got) != ranks-1 || peer != want {
				t.Errorf("rank %d has queues to %v in this order; the one at %d should go to rank %d", r.ID(), got, i, want)
			}
		}
		return r.Barrier(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}
