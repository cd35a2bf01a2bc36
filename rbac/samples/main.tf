# Nothing but an output: there is nothing to destroy, and the Executor can be deleted at once.
output "greeting" {
  value = "Hello from a custom resource"
}
