#include <assert.h>
#include "base/err.h"
#include "metaroce/conn.h"

#define ARRIVING_FIRST 2u

struct metaroce_qp *metaroce_qp_by_number(const struct metaroce *m, uint32_t number)
{
	return dsf_hash_get(&m->qps, &number);
}

struct metaroce_qp *metaroce_qp_new(struct metaroce *m, uint32_t number, uint32_t peer_number,
	const struct metaroce_peer *peer, uint64_t user, int *err)
{
	struct metaroce_conn *c;
	struct metaroce_qp *qp;

	*err = 0;
	if (number == 0 || number > METAROCE_QPN_MAX || peer_number == 0 ||
		peer_number > METAROCE_QPN_MAX)
		*err = -DSF_E_BADFIELD;
	else if (dsf_hash_get(&m->qps, &number) != NULL)
		*err = -DSF_E_DUPLICATE;
	if (*err < 0)
		return NULL;
	c = metaroce_conn_to(m, peer, err);
	if (c == NULL)
		return NULL;
	qp = dsf_hash_put(&m->qps, &number);
	if (qp == NULL) {
		*err = m->qps.count >= METAROCE_QPS_MAX ? -DSF_E_FULL : -DSF_E_NOMEM;
		return NULL;
	}
	qp->peer_number = peer_number;
	qp->conn = c;
	qp->user = user;
	qp->life = ++m->lives;
	qp->view.number = number;
	qp->view.user = user;
	qp->view.connection = c->id;
	qp->view.first_rx_at = qp->view.last_rx_at = DSF_NEVER;
	metaroce_list_push(&c->qps, &qp->all);
	c->qps_count++;
	return qp;
}

void metaroce_qp_connect(struct metaroce_qp *qp, dsf_instant now)
{
	if (qp->conn->state == METAROCE_CONN_UNUSED)
		metaroce_conn_ask(qp->conn, now);
	else if (qp->conn->state == METAROCE_CONN_OPEN && qp->conn->messages == 0)
		metaroce_conn_check(qp->conn, now);
}

static void retire(struct metaroce *m, struct metaroce_message *message)
{
	if (message->done && message->told && message->records == 0)
		dsf_pool_give(&m->messages, message);
}

void metaroce_message_unuse(struct metaroce *m, struct metaroce_message *message)
{
	assert(message->records > 0);
	message->records--;
	retire(m, message);
}

/* Takes the stream's first message out; it is complete with status. */
static void finish_first(struct metaroce_qp *qp, int status, bool tell)
{
	struct metaroce *m = qp->conn->m;
	struct metaroce_message *message = qp->first;

	qp->first = message->next;
	if (qp->first == NULL)
		qp->last = NULL;
	if (qp->sending == message)
		qp->sending = message->next;
	qp->conn->messages--;
	qp->conn->backlog -= message->write.size - message->sent;
	message->next = NULL;
	message->status = status;
	message->done = true;
	if (!tell) {
		message->told = true;
		retire(m, message);
		return;
	}
	if (m->done_last != NULL)
		m->done_last->next = message;
	else
		m->done_first = message;
	m->done_last = message;
}

/* Takes what is complete but not yet told out of the NIC's list. */
static void forget_told(struct metaroce *m, const struct metaroce_qp *qp)
{
	struct metaroce_message **at = &m->done_first;

	m->done_last = NULL;
	while (*at != NULL) {
		struct metaroce_message *message = *at;

		if (message->qp == qp) {
			*at = message->next;
			message->told = true;
			retire(m, message);
		} else {
			m->done_last = message;
			at = &message->next;
		}
	}
}

void metaroce_qp_free(struct metaroce *m, struct metaroce_qp *qp)
{
	struct metaroce_conn *c = qp->conn;

	while (qp->first != NULL)
		finish_first(qp, -DSF_E_STATE, false);
	forget_told(m, qp);
	metaroce_list_remove(&qp->send);
	metaroce_list_remove(&qp->tell);
	metaroce_list_remove(&qp->all);
	if (c->query_qp == qp)
		c->query_qp = NULL;
	c->qps_count--;
	dsf_memory_delete(
		m->config.memory, qp->arriving, qp->arriving_count * sizeof(*qp->arriving));
	dsf_hash_remove(&m->qps, qp);
}

struct metaroce_message *metaroce_qp_next(const struct metaroce_qp *qp)
{
	struct metaroce_message *message = qp->sending;

	if (message == NULL || message->msn - qp->done_msn >= METAROCE_STREAM_WINDOW)
		return NULL;
	return message;
}

static void offer(struct metaroce_qp *qp)
{
	if (metaroce_qp_next(qp) != NULL)
		metaroce_list_push(&qp->conn->streams, &qp->send);
	else
		metaroce_list_remove(&qp->send);
}

int metaroce_post_write(
	struct metaroce *m, struct metaroce_qp *qp, const struct metaroce_write *w, dsf_instant now)
{
	struct metaroce_conn *c = qp->conn;
	struct metaroce_message *message;

	if (qp->status < 0)
		return -DSF_E_STATE;
	message = dsf_pool_take(&m->messages);
	if (message == NULL)
		return m->messages.used + m->messages.slab_objects > METAROCE_MESSAGES_MAX
			       ? -DSF_E_FULL
			       : -DSF_E_NOMEM;
	*message = (struct metaroce_message){
		.qp = qp, .write = *w, .msn = qp->next_msn++, .posted_at = now
	};
	if (qp->last != NULL)
		qp->last->next = message;
	else
		qp->first = message;
	qp->last = message;
	if (qp->sending == NULL)
		qp->sending = message;
	if (c->messages++ == 0) {
		metaroce_conn_progress(c, now);
		for (uint32_t i = 0; c->good_count < c->paths_count && i < c->paths_count; i++)
			metaroce_path_resume(&c->paths[i], now);
	}
	c->backlog += w->size;
	qp->view.messages_posted++;
	qp->view.bytes_posted += w->size;
	offer(qp);
	metaroce_conn_ask(c, now);
	metaroce_conn_wake_all(c);
	return 0;
}

void metaroce_qp_sent(struct metaroce_qp *qp, struct metaroce_message *message, uint32_t size)
{
	message->begun = true;
	message->sent += size;
	qp->conn->backlog -= size;
	if (message->sent == message->write.size)
		qp->sending = message->next;
	metaroce_list_remove(&qp->send);
	offer(qp);
}

int metaroce_qp_done(struct metaroce_qp *qp, uint32_t msn, dsf_instant now)
{
	struct metaroce *m = qp->conn->m;
	bool any = false;

	if ((int32_t)(msn - qp->next_msn) > 0)
		return -DSF_E_PEER;
	while (qp->first != NULL && (int32_t)(msn - qp->first->msn) > 0) {
		struct metaroce_message *message = qp->first;

		if (!message->begun || message->sent != message->write.size)
			return -DSF_E_PEER;
		qp->done_msn = message->msn + 1;
		qp->view.messages_done++;
		qp->view.bytes_done += message->write.size;
		dsf_trace_emit(m->config.trace, now, DSF_EVENT_MESSAGE_DONE, m->config.node,
			qp->number, message->msn);
		finish_first(qp, 0, true);
		any = true;
	}
	if (any) {
		metaroce_conn_progress(qp->conn, now);
		offer(qp);
	}
	return 0;
}

bool metaroce_qp_is_virgin(const struct metaroce_qp *qp)
{
	return qp->done_msn == 0 && (qp->first == NULL || !qp->first->begun) &&
	       dsf_time_is_never(qp->view.first_rx_at);
}

void metaroce_qp_fail(struct metaroce_qp *qp, int status)
{
	if (qp->status == 0)
		qp->status = status;
	qp->view.status = qp->status;
	while (qp->first != NULL)
		finish_first(qp, status, true);
	metaroce_list_remove(&qp->send);
}

bool metaroce_complete(struct metaroce *m, struct metaroce_completion *completion)
{
	struct metaroce_message *message = m->done_first;

	if (message == NULL)
		return false;
	m->done_first = message->next;
	if (m->done_first == NULL)
		m->done_last = NULL;
	*completion = (struct metaroce_completion){ .qp = message->qp,
		.qp_user = message->qp->user,
		.user = message->write.user,
		.status = message->status,
		.size = message->write.size,
		.posted_at = message->posted_at };
	message->told = true;
	retire(m, message);
	return true;
}

static int make_room(struct metaroce_qp *qp, uint32_t ahead)
{
	const struct dsf_memory *memory = qp->conn->m->config.memory;
	uint32_t count = qp->arriving_count == 0 ? ARRIVING_FIRST : qp->arriving_count;
	struct metaroce_arriving *grown;

	while (count <= ahead)
		count *= 2;
	grown = dsf_memory_new(memory, count * sizeof(*grown));
	if (grown == NULL)
		return -DSF_E_NOMEM;
	for (uint32_t i = 0; i < qp->arriving_count; i++) {
		uint32_t msn = qp->expected + i;

		grown[msn & (count - 1)] = qp->arriving[msn & (qp->arriving_count - 1)];
	}
	dsf_memory_delete(memory, qp->arriving, qp->arriving_count * sizeof(*grown));
	qp->arriving = grown;
	qp->arriving_count = count;
	return 0;
}

int metaroce_qp_check(struct metaroce_qp *qp, const struct metaroce_data *data)
{
	uint32_t ahead = data->msn - qp->expected;
	const struct metaroce_arriving *a;

	if (data->source_qp != qp->peer_number || qp->status < 0)
		return -DSF_E_UNKNOWN;
	if (ahead >= METAROCE_STREAM_WINDOW)
		return -DSF_E_PEER;
	if (ahead >= qp->arriving_count && make_room(qp, ahead) < 0)
		return -DSF_E_NOMEM;
	a = &qp->arriving[data->msn & (qp->arriving_count - 1)];
	if (a->begun && (a->size != data->message_size || data->payload > a->size - a->received))
		return -DSF_E_PEER;
	return 0;
}

static void complete_in_order(struct metaroce_qp *qp)
{
	bool any = false;

	while (qp->arriving_count > 0) {
		struct metaroce_arriving *a =
			&qp->arriving[qp->expected & (qp->arriving_count - 1)];

		if (!a->begun || a->placed < a->size)
			break;
		*a = (struct metaroce_arriving){ 0 };
		qp->expected++;
		qp->view.messages_received++;
		any = true;
	}
	if (any) {
		metaroce_ack_tell(qp->conn, qp);
		metaroce_ack_now(qp->conn, qp->conn->ack_plane);
	}
}

void metaroce_qp_arrived(struct metaroce_qp *qp, const struct metaroce_data *data, dsf_instant now)
{
	struct metaroce_arriving *a = &qp->arriving[data->msn & (qp->arriving_count - 1)];

	a->begun = true;
	a->size = data->message_size;
	a->received += data->payload;
	qp->view.bytes_received += data->payload;
	if (dsf_time_is_never(qp->view.first_rx_at))
		qp->view.first_rx_at = now;
	qp->view.last_rx_at = now;
	if (data->payload == 0)
		complete_in_order(qp);
}

void metaroce_qp_placed(struct metaroce_qp *qp, uint32_t msn, uint32_t size, int status)
{
	struct metaroce *m = qp->conn->m;
	struct metaroce_arriving *a;

	assert(msn - qp->expected < qp->arriving_count);
	if (status < 0 && status != -DSF_E_CORRUPT) {
		struct metaroce_nack nack = {
			.code = METAROCE_NACK_ACCESS, .qp = qp->peer_number, .msn = msn
		};

		metaroce_qp_fail(qp, -DSF_E_ACCESS);
		metaroce_input_nack(m, qp->conn, qp->conn->ack_plane, NULL, &nack);
		return;
	}
	if (status < 0) {
		qp->view.bytes_wrong += size;
		m->counters.bytes_wrong += size;
	}
	a = &qp->arriving[msn & (qp->arriving_count - 1)];
	a->placed += size;
	assert(a->placed <= a->received);
	complete_in_order(qp);
}

void metaroce_qp_look(const struct metaroce_qp *qp, struct metaroce_qp_view *view)
{
	*view = qp->view;
}

uint64_t metaroce_hint(const struct metaroce_qp *qp, uint32_t plane)
{
	return plane < qp->conn->m->config.planes ? qp->conn->planes[plane].hint_bps : 0;
}
