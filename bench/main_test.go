package bench

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/triggeredplans/sluice/rank"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run runs body on the ranks of a world with queues of its own.
func run(ctx context.Context, ranks int, heapBytes int64, body func(context.Context, *rank.Rank) error) error {
	node, err := rank.NewNode(rank.NodeConfig{})
	if err != nil {
		return err
	}
	return rank.Run(ctx, rank.Config{Ranks: ranks, HeapBytes: heapBytes, Platform: "host", Node: node}, body)
}
