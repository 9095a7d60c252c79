variable "project" {
  type        = string
  description = "The project's ID."
}

variable "name" {
  type        = string
  description = "What the pool is called."
}

variable "cluster" {
  type        = string
  description = "The cluster."
}

variable "region" {
  type        = string
  description = "Where the cluster lies."
}

variable "zone" {
  type        = string
  description = "The zone of the machines."
}

variable "node_account" {
  type        = string
  description = "The nodes' service account."
}

variable "machine_type" {
  type        = string
  description = "The machine type, such as a3-highgpu-8g."

  validation {
    condition     = can(regex("^(a2|a3|a4|a4x|g2|g4)-", var.machine_type))
    error_message = "A machine type with GPUs."
  }
}

variable "accelerator" {
  type        = string
  description = "What GKE calls the GPU, such as nvidia-h100-80gb."

  validation {
    condition     = startswith(var.accelerator, "nvidia-")
    error_message = "A name that begins with nvidia-."
  }
}

variable "gpus_per_node" {
  type        = number
  description = "GPUs of each machine."
}

variable "nodes" {
  type        = number
  description = "Machines, at most."

  validation {
    condition     = var.nodes >= 1 && floor(var.nodes) == var.nodes
    error_message = "A whole number of at least 1."
  }
}

variable "min_nodes" {
  type        = number
  description = "Machines that are always up."

  validation {
    condition     = var.min_nodes >= 0 && floor(var.min_nodes) == var.min_nodes
    error_message = "A whole number."
  }
}

variable "compact" {
  type        = bool
  description = "Whether the machines are placed close to one another."
}

variable "driver" {
  type        = string
  description = "NVIDIA's driver: DEFAULT, LATEST, or INSTALLATION_DISABLED for one of your own."
  default     = "LATEST"

  validation {
    condition     = contains(["DEFAULT", "LATEST", "INSTALLATION_DISABLED"], var.driver)
    error_message = "One of DEFAULT, LATEST, INSTALLATION_DISABLED."
  }
}

variable "term" {
  type        = string
  description = "ondemand, spot, reserved or flex-start."

  validation {
    condition     = contains(["ondemand", "spot", "reserved", "flex-start"], var.term)
    error_message = "One of ondemand, spot, reserved, flex-start."
  }
}

variable "reservation" {
  type        = string
  description = "The reservation that a reserved pool is of."
  default     = null
}

variable "max_run_duration" {
  type        = string
  description = "How long a machine of flex-start may stay, in seconds with an s."
  default     = "604800s"
}

variable "labels" {
  type        = map(string)
  description = "Labels for costs."
}
