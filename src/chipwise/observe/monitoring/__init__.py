"""What Prometheus and Grafana are told: rules and dashboards, made of data, over one set of series."""
