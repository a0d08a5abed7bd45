import { createServer as createHttp, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { createServer as createTcp, type AddressInfo, type Server as TcpServer, type Socket } from 'node:net';
import { WebSocketServer } from 'ws';
import { AddressPolicy, parseEgressAllow } from '../../../src/platform/egress/address-policy.js';
import { Egress, type ResolveHost } from '../../../src/platform/egress/egress.js';
import { selfSignedCertificate } from '../special-upstreams/faulty-tls.js';

/** Stands for the public internet: this address is open to {@link Outside.egress}, 127.0.0.1 is not. */
const OUTSIDE_ADDRESS = '127.0.0.2';

/** Names that resolve to it. `inside.test` resolves to 127.0.0.1. */
const OUTSIDE_NAMES = ['api.example.test', 'other.example.test', 'example.test'];

/** Servers on an address that stands for the internet, and a way out that takes it for public. */
export interface Outside {
  httpPort: number;
  httpsPort: number;
  tcpPort: number;
  /** Requests as they came, both servers. */
  seen: IncomingMessage[];
  /** Sockets that are open now, of all three servers. */
  open: Set<Socket>;
  /** Handler of the next requests. */
  answer: RequestListener;
  /** A way out of its own, for one proxy. */
  egress(): Egress;
  close(): Promise<void>;
}

/** The TCP server echoes; WebSockets are echoed at `/socket` and refused with 418 elsewhere. */
export async function startOutside(): Promise<Outside> {
  const certificate = selfSignedCertificate(...OUTSIDE_NAMES);
  const open = new Set<Socket>();
  const seen: IncomingMessage[] = [];
  const handle: RequestListener = (req, res) => {
    seen.push(req);
    outside.answer(req, res);
  };
  const servers = [createHttp(handle), createHttps(certificate, handle)];
  const tcp = createTcp((socket) => void socket.on('error', () => undefined).pipe(socket));
  for (const server of servers) {
    // Whoever closes an idle connection, it is not the server.
    server.keepAliveTimeout = 600_000;
    echoSockets(server);
  }
  for (const server of [...servers, tcp]) {
    server.on('connection', (socket: Socket) => {
      open.add(socket);
      socket.once('close', () => open.delete(socket));
    });
  }
  const [httpPort = 0, httpsPort = 0, tcpPort = 0] = await Promise.all([...servers, tcp].map(listen));
  const policy = new AddressPolicy(parseEgressAllow(OUTSIDE_ADDRESS));
  const outside: Outside = {
    httpPort,
    httpsPort,
    tcpPort,
    seen,
    open,
    answer: (_req, res) => void res.end('outside'),
    egress: () => new Egress(policy, resolve, { ca: certificate.cert }),
    close: async () => {
      for (const socket of open) socket.destroy();
      await Promise.all([...servers, tcp].map((server) => new Promise((done) => server.close(done))));
    },
  };
  return outside;
}

const resolve: ResolveHost = (hostname, _options, callback) => {
  const address = OUTSIDE_NAMES.includes(hostname) ? OUTSIDE_ADDRESS : hostname === 'inside.test' ? '127.0.0.1' : null;
  if (address) callback(null, [{ address, family: 4 }]);
  else callback(Object.assign(new Error('no such host'), { code: 'ENOTFOUND' }), []);
};

function echoSockets(server: Server): void {
  const sockets = new WebSocketServer({ noServer: true });
  server.on('upgrade', (req: IncomingMessage, socket: Socket, head: Buffer) => {
    if (req.url !== '/socket') {
      socket.end('HTTP/1.1 418 No\r\ncontent-length: 3\r\nconnection: close\r\n\r\nno!');
      return;
    }
    sockets.handleUpgrade(req, socket, head, (peer) => {
      peer.on('message', (data, isBinary) => peer.send(data, { binary: isBinary }));
      peer.on('error', () => undefined);
    });
  });
}

function listen(server: Server | TcpServer): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, OUTSIDE_ADDRESS, () => resolve((server.address() as AddressInfo).port));
  });
}
