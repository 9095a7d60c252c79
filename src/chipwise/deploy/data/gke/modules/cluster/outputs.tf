output "id" {
  value       = google_container_cluster.this.id
  description = "The cluster."
}

output "name" {
  value       = google_container_cluster.this.name
  description = "Its name."
}

output "node_account" {
  value       = google_service_account.nodes.email
  description = "The nodes' service account."

  # Nodes that come up before their account may pull images never become ready.
  depends_on = [google_project_iam_member.nodes]
}
