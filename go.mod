module github.com/nox-mesh/nox-mesh

go 1.26.0

require (
	github.com/BurntSushi/toml v1.6.0 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	go.etcd.io/bbolt v1.4.3 // indirect
	golang.org/x/sys v0.50.0
)
