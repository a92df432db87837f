// Package paired compares an earlier commit, the base, with the current tree on a machine that has other load. Each
// round measures the base, the current tree, and the base again, so that slow changes of the machine affect the results
// of the base and of the current tree. The difference between the two runs of the base shows the noise. A difference
// between base and current tree has no meaning if it is not larger than the noise.
package paired
