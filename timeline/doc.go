// Package timeline records when each chunk of a plan was marked, when its copy
// to each peer began and ended, and when it arrived there. WriteTrace writes
// that for Perfetto and Chrome; package timeline/picture draws it.
//
// A world records when its Config has a Recorder. Then kernels stamp their
// marks, and every copy of a chunk gets three more packets, which count against
// the capacity of its queue. Without a Recorder none of this exists.
//
// timeline imports no other package of this module.
package timeline
