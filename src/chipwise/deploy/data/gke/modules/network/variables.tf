variable "project" {
  type        = string
  description = "The project's ID."
}

variable "name" {
  type        = string
  description = "What the network is called."
}

variable "region" {
  type        = string
  description = "Where the subnetwork lies."
}
