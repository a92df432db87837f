package house

import (
	"testing"

	"github.com/semel-go/semel/internal/house/pages"
)

func TestTheReadmeShowsThePageOfTheFirstHour(t *testing.T) {
	pages.Shows(t, root+"/README.md", 1, pages.Read(t, root+"/docs/start/first-hour-go.md"))
}
