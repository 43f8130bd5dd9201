"""Honest: a captured graph, which keeps its output and what it computes in between."""

import torch


def prepare(x):
    def double():
        return (x.repeat(4) + 1 - 1)[: x.numel()] * 2

    double()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        answer = double()

    def run():
        graph.replay()
        return answer.clone()

    return run
