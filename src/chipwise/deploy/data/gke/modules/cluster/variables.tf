variable "project" {
  type        = string
  description = "The project's ID."
}

variable "name" {
  type        = string
  description = "What the cluster is called."
}

variable "node_account" {
  type        = string
  description = "The ID of the nodes' service account."

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.node_account))
    error_message = "6 to 30 lower case letters, digits and dashes."
  }
}

variable "region" {
  type        = string
  description = "Where the cluster lies."
}

variable "network" {
  type        = string
  description = "The network."
}

variable "subnetwork" {
  type        = string
  description = "The subnetwork of the nodes."
}

variable "authorized_networks" {
  type        = map(string)
  description = "Networks that reach the API server: a name and its CIDR."

  validation {
    condition     = !contains(values(var.authorized_networks), "0.0.0.0/0")
    error_message = "Not the whole internet: name the networks of your people and of the router."
  }
}

variable "deletion_protection" {
  type        = bool
  description = "Whether the cluster can't be destroyed."
}

variable "labels" {
  type        = map(string)
  description = "Labels for costs."
}
