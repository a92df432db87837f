module github.com/semel-go/semel/cmd/semel

go 1.26

require github.com/semel-go/semel v0.0.0
