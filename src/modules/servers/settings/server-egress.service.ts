import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { ServerRuntime } from './server-runtime.entity.js';

/** Where the code of servers may go, for what runs their releases. */
@Injectable()
export class ServerEgressService {
  constructor(@InjectRepository(ServerRuntime) private readonly rows: Repository<ServerRuntime>) {}

  /** The only hosts a server's code may reach, as `Program.egressAllow`; null: any public one. */
  async allowOf(serverId: string): Promise<string[] | null> {
    return (await this.rows.findOneBy({ serverId }))?.egressAllow ?? null;
  }
}
