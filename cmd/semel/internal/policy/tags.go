package policy

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"
)

// knownTags are those of the values that a policy holds.
var knownTags = [...]string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq"}

// tags refuses every tag that is written out and means nothing here: the value
// behind it would be read as if it were not there.
func (d *decoder) tags(n *yaml.Node) {
	if tag := n.ShortTag(); n.Style&yaml.TaggedStyle != 0 && !slices.Contains(knownTags[:], tag) {
		d.report(Invalid, "", position{n.Line, n.Column}, fmt.Sprintf("the tag %.40s is unknown", tag), "write the value without a tag")
		n.Tag, n.Style = "", n.Style&^yaml.TaggedStyle // it is one fault
	}
	for _, below := range n.Content {
		d.tags(below)
	}
}
