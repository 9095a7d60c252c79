locals {
  autoscaled = var.min_nodes < var.nodes
}

resource "google_container_node_pool" "this" {
  project        = var.project
  name           = var.name
  cluster        = var.cluster
  location       = var.region
  node_locations = [var.zone]

  node_count         = local.autoscaled ? null : var.nodes
  initial_node_count = local.autoscaled ? var.min_nodes : null

  dynamic "autoscaling" {
    for_each = local.autoscaled ? [1] : []
    content {
      total_min_node_count = var.min_nodes
      total_max_node_count = var.nodes
      location_policy      = "ANY"
    }
  }

  # Close to one another, where jobs span machines.
  dynamic "placement_policy" {
    for_each = var.compact ? [1] : []
    content {
      type = "COMPACT"
    }
  }

  dynamic "queued_provisioning" {
    for_each = var.term == "flex-start" ? [1] : []
    content {
      enabled = true
    }
  }

  management {
    auto_upgrade = true
    # A machine of flex-start is not given again: a repair would end the job and get nothing for it.
    auto_repair = var.term != "flex-start"
  }

  node_config {
    machine_type     = var.machine_type
    service_account  = var.node_account
    oauth_scopes     = ["https://www.googleapis.com/auth/cloud-platform"]
    labels           = merge(var.labels, { "chipwise-pool" = var.name })
    resource_labels  = var.labels
    spot             = var.term == "spot"
    flex_start       = var.term == "flex-start" ? true : null
    max_run_duration = var.term == "flex-start" ? var.max_run_duration : null

    guest_accelerator {
      type  = var.accelerator
      count = var.gpus_per_node

      # Changing the version replaces the pool: drain it first.
      gpu_driver_installation_config {
        gpu_driver_version = var.driver
      }
    }

    dynamic "reservation_affinity" {
      for_each = var.term == "reserved" ? [1] : []
      content {
        consume_reservation_type = "SPECIFIC_RESERVATION"
        key                      = "compute.googleapis.com/reservation-name"
        values                   = [var.reservation]
      }
    }

    # Without a reservation named, none that is free by chance is used up.
    dynamic "reservation_affinity" {
      for_each = var.term == "flex-start" ? [1] : []
      content {
        consume_reservation_type = "NO_RESERVATION"
      }
    }

    # A node whose boot chain was changed does not start.
    shielded_instance_config {
      enable_secure_boot          = true
      enable_integrity_monitoring = true
    }

    # Pods see the account that is theirs, never the node's token.
    workload_metadata_config {
      mode = "GKE_METADATA"
    }
  }

  lifecycle {
    # How many nodes a pool began with says nothing later, and a change of it would replace the pool.
    ignore_changes = [initial_node_count]
  }
}
