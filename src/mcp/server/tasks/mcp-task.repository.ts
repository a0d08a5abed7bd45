import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { LessThan, Repository } from 'typeorm';
import { McpTask } from './mcp-task.entity.js';
import { deletionTime } from '../../../platform/database/deletion-time.js';

const SWEEP_EVERY_MS = 3_600_000;

/** Maximum number of listed tasks; a further task replaces the oldest. */
const LISTED_MAX = 50;

@Injectable()
export class McpTasksRepository {
  private sweptAt = 0;

  constructor(@InjectRepository(McpTask) private readonly mcpTaskRepository: Repository<McpTask>) {}

  /** @param lifeMs time until the task expires */
  async add(owner: string, task: string, lifeMs: number): Promise<void> {
    const now = Date.now();
    await this.mcpTaskRepository.insert({ owner, task, createdAt: new Date(now), expiresAt: new Date(now + lifeMs) });
    const surplus = await this.mcpTaskRepository.find({ ...newestOf(owner), skip: LISTED_MAX });
    if (surplus.length > 0) await this.mcpTaskRepository.remove(surplus);
    if (now - this.sweptAt < SWEEP_EVERY_MS) return;
    this.sweptAt = now;
    const old = await deletionTime(this.mcpTaskRepository);
    if (old) await this.mcpTaskRepository.delete({ expiresAt: LessThan(old) });
  }

  /** Lists tasks that have not expired, newest first; at most 50. */
  async list(owner: string): Promise<string[]> {
    const rows = await this.mcpTaskRepository.find({ ...newestOf(owner), take: LISTED_MAX });
    return rows.filter(({ expiresAt }) => expiresAt > new Date()).map(({ task }) => task);
  }
}

function newestOf(owner: string) {
  return { where: { owner }, order: { createdAt: 'DESC' } } as const;
}
