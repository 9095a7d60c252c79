output "network" {
  value       = google_compute_network.this.id
  description = "The network."
}

output "subnetwork" {
  value       = google_compute_subnetwork.this.id
  description = "The subnetwork of the nodes."
}
