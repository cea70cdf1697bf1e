// Package chart tests deploy/helm/stallspan with helm itself, and with the types of Kubernetes and its policies. `make
// chart` runs the tests. It is a module of its own because helm is large.
package chart
