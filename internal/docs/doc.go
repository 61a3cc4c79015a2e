// Package docs has no code of its own. Its tests keep true what is written
// about the module: the programs in the README and in docs/ run as a reader
// would run them, links and commands lead somewhere, and what every package
// must have is there.
package docs
