package softengine_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/copyengine/softengine"
	"github.com/triggeredplans/sluice/hip"
)

// A chain is prepared while its gate is closed; opening the gate sends the
// bytes and signals their arrival.
func Example() {
	platform, err := hip.Open("host")
	check(err)
	device, err := platform.Device(0)
	check(err)
	mem, err := device.Alloc(4096)
	check(err)
	defer mem.Free()
	const gate, arrival, from, to = 0, 64, 1024, 2048

	read, write, doorbell := new(hip.Word), new(hip.Word), new(hip.Word)
	buf := make([]byte, sdma.MinRingBytes)
	ring, err := sdma.NewRing(buf, read, write, sdma.WordDoorbell{Word: doorbell})
	check(err)
	engine, err := softengine.Start(softengine.Config{Ring: buf, Read: read, Doorbell: doorbell})
	check(err)
	defer engine.Stop()

	var chain sdma.Program
	at := mem.Addr()
	check(errors.Join(chain.Poll(at+gate, 1), chain.Copy(at+from, at+to, 5, 1, 5, 5), chain.Signal(at+arrival, 1)))
	_, err = ring.Append(&chain)
	check(err)
	ring.Ring()

	copy(mem.Bytes(from, 5), "hello")
	mem.Word(gate).Store(1)
	check(hip.NewWaiter().Await(context.Background(), mem.Word(arrival), func(v uint64) bool { return v == 1 }, nil))
	fmt.Printf("%s\n", mem.Bytes(to, 5))
	// Output: hello
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
