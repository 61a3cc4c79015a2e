package picture_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/triggeredplans/sluice/timeline"
	"github.com/triggeredplans/sluice/timeline/picture"
)

// Save draws one round; Last picks one from what a Recorder has.
func ExampleSave() {
	var rec timeline.Recorder // that a world has told of its rounds
	rec.Add(timeline.Round{World: "world 1", Plan: "plan 1", Round: 1, Started: time.Second, Chunks: []timeline.Chunk{
		{ID: 0, Marked: time.Second + time.Millisecond, Copies: []timeline.Copy{{Peer: 1, Began: time.Second + time.Millisecond, Ended: time.Second + 2*time.Millisecond}}},
	}})
	dir, err := os.MkdirTemp("", "picture")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "round.svg")
	fmt.Println(picture.Save(file, picture.Last(rec.Rounds())))
	info, err := os.Stat(file)
	fmt.Println(err, info.Size() > 0)
	// Output:
	// <nil>
	// <nil> true
}
