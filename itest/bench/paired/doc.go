// Package paired compares an earlier commit, the base, with the current tree on a machine that has other
// load. Each round measures the base, the current tree, and the base again, so that slow changes of the
// machine affect both. The difference between the two runs of the base shows the noise. A change that is not
// larger than the noise has no meaning.
package paired
