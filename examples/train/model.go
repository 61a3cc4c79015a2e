package main

import "math"

// The model tells the next character from the ones before it: a hidden layer
// with tanh over their one-hot codes, and an output layer with softmax.
const (
	history = 8  // characters that it sees
	vocab   = 32 // codes, of which the alphabet takes 30
	hidden  = 64 // units
	batch   = 256
)

// Its parameters are one matrix, in the order in which the forward pass needs
// them. Blocks of rows are what ranks own, and what a chunk sends.
const (
	width     = 64 // columns
	blockRows = 8

	blockInBias  = 0
	blockIn      = 1
	blockOut     = blockIn + history*vocab/blockRows
	blockOutBias = blockOut + hidden/blockRows
	blocks       = blockOutBias + 1

	rows   = blocks * blockRows
	weight = rows * width // of which some is padding

	parameters = (history*vocab+1)*hidden + (hidden+1)*vocab

	// A rank's gradients have the same blocks, and one for its part of the loss.
	blockLoss  = blocks
	gradBlocks = blocks + 1
	gradRows   = gradBlocks * blockRows
)

// gradOrder is the block that the backward pass completes in a step: the loss,
// then the output layer, then the input layer.
func gradOrder(step int) int {
	switch {
	case step == 0:
		return blockLoss
	case step < outSteps:
		return blockOut + step - 1
	}
	return step - outSteps
}

// outSteps is how many of these come before the input layer.
const outSteps = 1 + blocks - blockOut

// row is a row of a matrix of parameters or gradients.
func row(m []float32, i int) []float32 { return m[i*width : (i+1)*width] }

// initial is what parameter i begins with.
func initial(seed uint64, i int) float32 {
	block := i / width / blockRows
	if block == blockInBias || block == blockOutBias {
		return 0
	}
	scale := 1 / math.Sqrt(history)
	if block >= blockOut {
		scale = 1 / math.Sqrt(hidden)
	}
	u := float64(mix(seed^uint64(i)*0xd6e8feb86659fd93)>>11) / (1 << 53)
	return float32(scale * (2*u - 1))
}

// adam is the optimizer's rule in one step.
type adam struct {
	correct1, correct2 float64 // for moments that began at 0
}

const (
	rate    = 0.01
	beta1   = 0.9
	beta2   = 0.99
	epsilon = 1e-8
)

// newAdam is the rule of update n, which counts from 1.
func newAdam(n int) adam {
	return adam{1 / (1 - math.Pow(beta1, float64(n))), 1 / (1 - math.Pow(beta2, float64(n)))}
}

// update changes a parameter and its moments for a gradient.
func (a adam) update(p, m, v *float32, g float64) {
	m1 := beta1*float64(*m) + (1-beta1)*g
	v1 := beta2*float64(*v) + (1-beta2)*g*g
	*m, *v = float32(m1), float32(v1)
	*p -= float32(rate * m1 * a.correct1 / (math.Sqrt(v1*a.correct2) + epsilon))
}

// tell turns a sample's logits into the gradient of its part of the batch's
// loss, and returns that part.
func tell(logits []float32, next uint8) float64 {
	most := logits[0]
	for _, l := range logits {
		most = max(most, l)
	}
	var sum float64
	for _, l := range logits {
		sum += math.Exp(float64(l - most))
	}
	loss := math.Log(sum) - float64(logits[next]-most)
	for c, l := range logits {
		logits[c] = float32(math.Exp(float64(l-most)) / sum / batch)
	}
	logits[next] -= 1.0 / batch
	return loss / batch
}
