"""Commands of RabbitMQ's tools that are none of `hutch ctl`, each with what to do in its place."""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final

_TABLE: Final = """\
queues are streams here, see `hutch ctl list_streams`
    list_queues queues streams
queues are streams here, see `hutch ctl delete_stream`
    delete_queue
`hutch ctl truncate_stream STREAM --before-offset 18446744073709551615` removes all that is in a
stream
    purge_queue purge
`hutch ctl stream_status STREAM` opens a stream and shows it
    list_unresponsive_queues
it is `hutch ctl list_stream_consumers` here
    list_consumers
a group gets another active consumer when that one leaves: `hutch ctl close_connections`
    activate_stream_consumer
a consumer stores its offset itself; `hutch ctl list_stream_tracking` shows it
    reset_offset
`hutch ctl close_connections` ends one, or all of a user or a virtual host
    close_connection close_all_connections close_all_user_connections close
it is `hutch ctl list_connections` here
    connections
it is `hutch ctl list_permissions --user USER` here
    list_user_permissions
it is `hutch ctl list_permissions` here
    permissions
it is `hutch ctl set_permissions` for each virtual host
    set_permissions_globally
`hutch ctl list_users` and `hutch ctl list_vhosts` show limits
    list_user_limits
`hutch ctl list_vhosts` shows limits
    list_vhost_limits
`hutch ctl set_user_limits USER` and `hutch ctl set_vhost_limits VHOST` remove limits
    clear_user_limits clear_vhost_limits user_limits vhost_limits
it is `hutch ctl list_users` here
    users
it is `hutch ctl list_vhosts` here
    vhosts
it is `hutch ctl list_exchanges` here
    exchanges
it is `hutch ctl list_bindings` here
    bindings
it is `hutch ctl list_policies` here
    policies list_policies_that_match
it is `hutch ctl list_operator_policies` here
    operator_policies
PUT /api/vhosts/NAME describes one anew
    update_vhost_metadata set_vhost_tags
virtual hosts are not protected from deletion
    enable_vhost_deletion_protection disable_vhost_deletion_protection
every virtual host runs as long as the server does
    reconcile_vhosts restart_vhost
it is `hutch ctl list_auth_attempts` here
    list_node_auth_attempt_stats auth_attempts
it is `hutch ctl reset_auth_attempts` here
    reset_node_auth_attempt_metrics
attempts are always counted: `hutch ctl list_auth_attempts --by address`
    enable_auth_attempt_source_tracking disable_auth_attempt_source_tracking
a user that logs in gets an answer of /api/whoami
    authenticate_user
it is `hutch hash-password` here
    hash_password passwords
it is `hutch export` here
    export_definitions export
it is `hutch import` here
    import_definitions import
they are `hutch export` and `hutch import` here
    definitions
it is `hutch ctl drain` here
    suspend_listeners
it is `hutch ctl revive` here
    resume_listeners
SIGTERM stops the server in good order; `hutch ctl stop_app` ends its service alone
    stop shutdown
`hutch ctl ping` tells whether the server is there
    await_startup wait await_online_nodes is_running is_booting check_running
`hutch ctl status` shows listeners and alarms; /api/health/checks has the checks
    health_check alarms check_alarms check_local_alarms listeners check_port_connectivity
    check_port_listener check_protocol_listener check_virtual_hosts node_health_check
    check_if_metadata_store_is_initialized check_if_metadata_store_is_initialized_with_data
`hutch ctl --help` lists the commands
    help
there is no completion; `hutch ctl --help` lists the commands
    autocomplete shell
`hutch ctl status` says it, and `hutch --version` of this program
    version server_version
`hutch config` shows the settings in force, `hutch ctl status` what runs
    report environment command_line_arguments os_env config_file
the log is standard error, and logs.level says how much is in it
    log_location log_tail log_tail_stream rotate_logs set_log_level
lines of the log tell of what happens
    consume_event_stream
/api/health/checks/certificate-expiration checks the dates; openssl shows the rest
    certificates check_certificate_expiration cipher_suites list_ciphers tls_versions
there is one node and no cluster; `hutch ctl status` shows it
    cluster_status nodes join_cluster forget_cluster_node rename_cluster_node update_cluster_nodes
    force_boot force_standalone_khepri_boot discover_peers set_cluster_name
    has_reached_target_cluster_size metadata_store_status post_upgrade
    await_online_quorum_plus_one
a server begins anew with an empty data directory
    reset force_reset
a stream has no replicas, and there are no quorum queues
    add_replica delete_replica add_member delete_member grow grow_to_count shrink rebalance
    transfer_leadership coordinator_status quorum_status force_checkpoint reclaim_quorum_memory
    check_if_node_is_quorum_critical check_for_quorum_queues_without_an_elected_leader
    check_if_new_quorum_queue_replicas_have_finished_initial_sync
    check_if_cluster_has_classic_queue_mirroring_policy check_if_node_is_mirror_sync_critical
    list_policies_with_classic_queue_mirroring list_operator_policies_with_classic_queue_mirroring
    remove_classic_queue_mirroring_from_policies
this server is no Erlang node; `hutch ctl status` shows what it is
    eval eval_file exec remote_shell observer force_gc maybe_stuck runtime_thread_stats
    erlang_version erlang_cookie_hash erlang_cookie_sources
ask the system's own tools, as ip and getent
    list_network_interfaces resolve_hostname resolver_info
there are no plugins: `hutch config --reference` describes what can be turned on
    plugins enable disable is_enabled directories set tanzu
there are no feature flags and no deprecated features
    enable_feature_flag list_feature_flags feature_flags list_deprecated_features
    deprecated_features check_if_any_deprecated_features_are_used
there are no topic permissions; `hutch ctl list_permissions` shows what there is
    clear_topic_permissions list_topic_permissions list_user_topic_permissions
    set_topic_permissions
there are no parameters but limits and policies: `hutch ctl set_vhost_limits`, `hutch ctl
set_policy`
    set_parameter clear_parameter list_parameters parameters set_global_parameter
    clear_global_parameter list_global_parameters global_parameters
memory and disk have no limits here: `hutch ctl set_alarm disk` holds publishers back, and
/api/nodes/NODE/memory shows the memory
    memory_breakdown set_vm_memory_high_watermark set_disk_free_limit
    activate_free_disk_space_monitoring deactivate_free_disk_space_monitoring
settings hold no encrypted values; passwords are hashed: `hutch hash-password`
    encode decode encrypt_conf_value decrypt_conf_value list_hashes
streams have no channels
    list_channels channels list_channel_interceptors set_channel_interceptor_priorities
no statistics are kept
    reset_stats_db message_size_stats
nothing is traced
    trace_on trace_off
messages are read and published by stream clients; `hutch store inspect` shows them while the
server does not run
    get peek publish
`hutch pipeline copy` copies streams from server to server
    federation
`hutch bridge` carries messages between queues, topics and streams, as shovels do
    shovels shovel_status delete_shovel restart_shovel
`hutch bridge` reads and writes topics of an MQTT broker
    list_mqtt_connections
rabbitmqadmin does it here too, at the management API (docs/management.md)
    declare delete list show
"""
"""Texts that say what to do, each above the commands in whose place; of rabbitmqadmin only the
first words of commands are here."""


def _rows() -> Iterator[tuple[str, str]]:
    text = ""
    for is_of_names, lines in groupby(_TABLE.splitlines(), lambda line: line.startswith(" ")):
        words = " ".join(map(str.strip, lines))
        if is_of_names:
            yield from ((name, text) for name in words.split())
        text = words


POINTERS: Final[Mapping[str, str]] = dict(_rows())


def pointer_of(command: str) -> str:
    """Return what to do in place of a command of RabbitMQ's tools; an empty text if it is none."""
    return POINTERS.get(command.replace("-", "_"), "")
