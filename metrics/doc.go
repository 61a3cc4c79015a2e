// Package metrics lets people see a world from outside: NewCollector exports it
// to Prometheus, and Handler serves a page that shows queues, plans and every
// chunk that has not arrived. A Grafana dashboard and alert rules for what is
// exported lie in dashboard.json and alerts.yaml.
//
// It observes and does no more: it reads counters and gates that exist anyway,
// when somebody asks. Plans and worlds that are closed disappear.
//
// metrics imports rank, plan and copyengine; only programs import it.
package metrics
