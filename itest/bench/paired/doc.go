// Package paired compares an earlier commit, the base, with the current tree on a machine with
// other load. Each round measures the base, the current tree, and the base again, so that slow
// changes of the machine affect both. The difference between the base's two runs is the noise.
// A difference that is not larger than the noise has no meaning.
package paired
