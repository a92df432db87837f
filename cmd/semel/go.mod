module github.com/semel-go/semel/cmd/semel

go 1.26

require (
	github.com/semel-go/semel v0.0.0
	go.yaml.in/yaml/v4 v4.0.0
)
