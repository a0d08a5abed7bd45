import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { Injectable, Logger } from '@nestjs/common';
import type * as Ws from 'ws';
import type { WebSocket, WebSocketServer } from 'ws';
import { errorAnswer } from '../../../platform/errors/error-body.js';
import { logFailure } from '../../../platform/errors/log-failure.js';
import { JSON_TYPE } from '../../../platform/http/json-answer.js';
import { lazyRequire } from '../../../platform/lazy-require.js';
import { matchPath } from '../../../platform/http/route-table.js';
import { OpenRequests } from '../../../platform/http/open-requests.js';
import { Admission } from '../../auth/admission.service.js';
import type { AccessRule, OwnedNamespace } from '../../auth/access.types.js';
import { ownConnections } from '../core/connections.access.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';
import { TunnelLimits } from './tunnel-limits.js';
import { FRAME_BYTES_MAX } from './tunnel-socket.js';
import { UplinkTunnels } from './uplink-tunnels.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { ConnectionHandles } from '../core/connection-handles.js';
import { ConnectionReader } from '../core/connection-reader.js';

const ws = lazyRequire<typeof Ws>('ws');

/** Path of handshakes, including the form that older clients use. */
const PATH = ['', 'connect', ':namespace', ':connectionId'];
const OLDER_PATH = [...PATH, 'uplink'];

const rule: AccessRule = { scope: 'connections:write', serves: true, ...ownConnections };

/** Rule of other paths, which return 404 for every valid key. */
const missingRule: AccessRule = { scope: 'connections:read' };

/**
 * Express routes cannot serve WebSocket handshakes. Rejections are plain HTTP responses; the published client shows their reason phrase.
 */
@Injectable()
export class UplinkGateway {
  private readonly logger = new Logger('http');
  private server: WebSocketServer | undefined;

  constructor(
    private readonly connectionReader: ConnectionReader,
    private readonly connectionHandles: ConnectionHandles,
    private readonly admission: Admission,
    private readonly openRequests: OpenRequests,
    private readonly uplinkTunnels: UplinkTunnels,
    private readonly tunnelLimits: TunnelLimits,
  ) {}

  /** Handles one handshake. `request.url` is canonical. The promise never rejects. */
  async handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const onError = () => socket.destroy();
    socket.on('error', onError);
    try {
      await this.pair(request, () => {
        socket.off('error', onError);
        return this.accept(request, socket, head);
      });
    } catch (error) {
      this.tunnelLimits.refuse(error);
      logFailure(this.logger, error, request);
      refuse(socket, error);
    }
  }

  private async pair(request: IncomingMessage, accept: () => WebSocket | null): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://slipway');
    const segments = pathname.split('/');
    const params = matchPath(PATH, segments) ?? matchPath(OLDER_PATH, segments) ?? undefined;
    const grant = await this.admission.admit(Object.assign(request, { params }), null, params ? rule : missingRule);
    this.openRequests.removeOnClose(request, request.socket);
    if (!params) throw new ResourceNotFoundError();
    const owned = grant.namespace as OwnedNamespace;
    const connectionId = String(params.connectionId);
    const { id } = await this.connectionReader.find(owned, connectionId, 'uplink');
    const requireActive = () => this.connectionHandles.active(owned, connectionId);
    await requireActive();
    this.openRequests.checkWhileOpen(request, requireActive);
    // Validated before the tunnel is claimed; ws would reject it only afterwards.
    const { method, headers } = request;
    const key = headers['sec-websocket-key'];
    const isKey = key !== undefined && /^[+/0-9A-Za-z]{22}==$/.test(key);
    const isVersion = headers['sec-websocket-version'] === '13' || headers['sec-websocket-version'] === '8';
    if (method !== 'GET' || !isKey || !isVersion) {
      throw new InvalidInputError(
        'This is not a WebSocket handshake: send GET with Sec-WebSocket-Version 13 and a Sec-WebSocket-Key (RFC 6455)',
      );
    }
    const { accountId, keyId } = grant.caller;
    const open = this.openRequests.find(request);
    const force = ['1', 'true'].includes(searchParams.get('force') ?? '');
    const leave = this.tunnelLimits.acquire(accountId);
    await this.uplinkTunnels.pair(
      { connectionId: id, namespaceId: owned.id, accountId, keyId, open, force, leave },
      accept,
    );
  }

  /** @returns null if the peer has closed the socket */
  private accept(request: IncomingMessage, socket: Duplex, head: Buffer): WebSocket | null {
    let opened: WebSocket | null = null;
    this.server ??= new (ws().WebSocketServer)({
      noServer: true,
      clientTracking: false,
      // Its buffers would be most of an idle tunnel's memory.
      perMessageDeflate: false,
      autoPong: false,
      maxPayload: FRAME_BYTES_MAX,
    });
    this.server.handleUpgrade(request, socket, head, (webSocket) => (opened = webSocket));
    return opened;
  }
}

function refuse(socket: Duplex, error: unknown): void {
  const { status, headers, body } = errorAnswer(error, 'connections');
  const text = JSON.stringify(body);
  const lines = Object.entries({
    ...headers,
    connection: 'close',
    'content-type': JSON_TYPE,
    'content-length': String(Buffer.byteLength(text)),
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  // A peer that does not close its side would leave the socket open.
  socket.once('finish', () => socket.destroy());
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${text}`);
}
